"use strict";
(() => {
  const open = async (token) => {
    try {
      const answer = await fetch("/login", { method: "POST", body: JSON.stringify({ token }), headers: { "content-type": "application/json" } });
      if (!answer.ok) throw new Problem((await answer.json()).error);
      location.replace("/");
    } catch (error) { find("problem").textContent = error.message; }
  };
  find("login").addEventListener("submit", (event) => { event.preventDefault(); open(find("token").value); });
  // The address that the server prints has the token behind a #, which browsers never send.
  const look = () => {
    const given = decodeURIComponent(location.hash.slice(1));
    if (given) { history.replaceState(null, "", location.pathname); open(given); }
  };
  window.addEventListener("hashchange", look);
  look();
})();
