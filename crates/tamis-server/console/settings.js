// What the reader chose: language and theme. Kept by the browser, where it keeps anything.

const kept = new Map();

function read(name) {
  try {
    return localStorage.getItem(`tamis.${name}`);
  } catch {
    return kept.get(name) ?? null;
  }
}

function write(name, value) {
  kept.set(name, value);
  try {
    localStorage.setItem(`tamis.${name}`, value);
  } catch {
    // It lasts as long as the page.
  }
}

/** Returns "en" or "zh": the chosen one, or the first of the browser's that there is. */
export function language() {
  const chosen = read("language");
  if (chosen === "en" || chosen === "zh") return chosen;
  for (const wanted of navigator.languages ?? []) {
    if (wanted.startsWith("zh")) return "zh";
    if (wanted.startsWith("en")) return "en";
  }
  return "en";
}

export function setLanguage(chosen) {
  write("language", chosen);
}

/** Returns "system", "light" or "dark". */
export function theme() {
  const chosen = read("theme");
  return chosen === "light" || chosen === "dark" ? chosen : "system";
}

export function setTheme(chosen) {
  write("theme", chosen);
  dispatchEvent(new Event("tamis-theme"));
}
