// A View for every recording.
(() => {
  // Made as they come near, so that a page of many recordings opens at once.
  const near = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      new View(target);
    }
  }, { rootMargin: "800px" });
  document.querySelectorAll("article.entry").forEach((article) => near.observe(article));

  const repaint = () => View.all.forEach((view) => {
    view.paint();
    view.draw();
  });
  document.addEventListener("theme", repaint);
})();
