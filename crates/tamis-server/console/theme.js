// Light or dark, before anything is drawn: the system's choice unless the switch says otherwise.
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  function apply() {
    let chosen = null;
    try {
      chosen = localStorage.getItem("tamis.theme");
    } catch {
      // A browser that keeps nothing: the system's choice.
    }
    const isDark = chosen === "dark" || (chosen !== "light" && system.matches);
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
  }
  apply();
  system.addEventListener("change", apply);
  addEventListener("tamis-theme", apply);
})();
