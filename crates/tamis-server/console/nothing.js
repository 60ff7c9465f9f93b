// The page for an unknown address or a key without a filter.

import { overviewAddress } from "./address.js";
import { h } from "./page.js";
import { t } from "./translations.js";

/** Creates the text of the page, with a link to the overview. */
export function nothing(text, key = null) {
  return h("section", { class: "empty", id: "nothing" },
    h("h1", {}, t("nothing.title")),
    key === null ? null : h("p", {}, h("code", { class: "key" }, key)),
    h("p", {}, text),
    h("p", {}, h("a", { href: `/${overviewAddress()}` }, `← ${t("filter.back")}`)));
}

/** Opens the view of an address that names no view. */
export function nothingHere(root) {
  root.replaceChildren(nothing(t("nothing.address")));
  return { title: () => t("nothing.title"), refresh: async () => {} };
}
