// The login form. It replaces the view while the server requires a password.

import { h } from "./page.js";
import { ask, setCredentials } from "./server.js";
import { t } from "./translations.js";

/** Shows the form in an element; calls `done` when the server has accepted a user. */
export function login(root, done) {
  const field = (name, type, value, autocomplete) =>
    h("input", { id: name, type, value, autocomplete, spellcheck: "false", autocapitalize: "none", required: type === "text" });
  const user = field("user", "text", "default", "username");
  const password = field("password", "password", "", "current-password");
  const button = h("button", { type: "submit" }, t("login.button"));
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const form = h("form", { class: "form login", onsubmit: submit },
    h("label", { for: "user" }, h("span", {}, t("login.user")), user),
    h("label", { for: "password" }, h("span", {}, t("login.password")), password),
    button);
  root.replaceChildren(h("h1", {}, t("login.title")), h("p", {}, t("login.why")), form, problem);
  password.focus();

  async function submit(event) {
    event.preventDefault();
    button.disabled = true;
    setCredentials(user.value, password.value);
    try {
      // Any status except 401 means success: the user may lack permission for this path.
      await ask("overview").catch((error) => { if (error.status !== 403) throw error; });
      done();
    } catch (error) {
      problem.textContent = error.status === 401 ? t("login.wrong") : t("login.failed");
      problem.hidden = false;
      button.disabled = false;
      password.select();
    }
  }

  return { title: () => t("login.title"), refresh: async () => {}, isLogin: true };
}
