// Names and focus for what the theme leaves without: screen readers and keyboards need them.
document.addEventListener("DOMContentLoaded", () => {
  for (const toggle of document.querySelectorAll(".bd-sidenav summary")) {
    const page = toggle.closest("li").querySelector("a").textContent.trim();
    toggle.setAttribute("aria-label", `Pages of ${page}`);
  }
  for (const formula of document.querySelectorAll("div.formula")) {
    if (formula.scrollWidth > formula.clientWidth) formula.tabIndex = 0;
  }
});
