// Tables that sort by a click on their heads: numbers from the largest, names from A.
document.querySelectorAll("table.sortable").forEach((table) => {
  const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
  const value = (row, column) => {
    const text = row.cells[column].textContent.trim().replace("−", "-");
    return column ? (Number.isNaN(parseFloat(text)) ? -Infinity : parseFloat(text)) : text;
  };
  heads.forEach((head, column) => {
    if (head.classList.contains("nosort")) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.onclick = () => {
      const descending = head.ariaSort ? head.ariaSort === "ascending" : column > 0;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const rows = [...body.rows].map((row) => [value(row, column), row]);
      const sign = descending ? -1 : 1;
      rows.sort(([a], [b]) => sign * (column ? (a === b ? 0 : a - b) : a.localeCompare(b, "en", { numeric: true })));
      body.append(...rows.map(([, row]) => row));
    };
  });
});
