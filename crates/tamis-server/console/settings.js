// Language and theme, stored by the browser if it allows storage.

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
    // The browser stores nothing: the choice lasts until the page is closed.
  }
}

/** Returns "en" or "zh": the chosen language, or the first supported language of the browser. */
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
