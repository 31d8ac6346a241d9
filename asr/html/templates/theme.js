// The button that overrides the system's light or dark; pages that paint listen for "theme".
{
  const button = document.getElementById("theme");
  const names = ["auto", "light", "dark"];
  const changed = () => document.dispatchEvent(new Event("theme"));
  button.hidden = false;
  button.onclick = () => {
    const next = names[(names.indexOf(document.documentElement.dataset.theme ?? "auto") + 1) % 3];
    document.documentElement.dataset.theme = next;
    button.textContent = `Theme: ${next}`;
    changed();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}
