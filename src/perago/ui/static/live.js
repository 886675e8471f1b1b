// Takes over the main part of the page whenever the server says that something has changed.
"use strict";

(() => {
  if (!document.body.dataset.live || !window.EventSource) return;
  const PLACES = "a, button, input, select, [tabindex]";
  const SCROLLED = ".wide, pre";
  const AGAIN_MS = 2000;
  const news = document.getElementById("news");
  const main = document.getElementById("main");
  let source = null;
  let busy = false;
  let missed = false;

  // A list that is open, a text that is written or that is being marked is not taken away.
  function inUse() {
    const focused = document.activeElement;
    const writes = ["SELECT", "INPUT", "TEXTAREA"].includes(focused && focused.tagName);
    const marked = document.getSelection();
    const marks = marked && !marked.isCollapsed && main.contains(marked.anchorNode);
    return (writes && main.contains(focused)) || marks;
  }

  // The same link or part, wherever it stands now; the same place only where there is none.
  function found(focused, place) {
    if (focused.id) return document.getElementById(focused.id);
    const href = focused.getAttribute("href");
    const all = [...main.querySelectorAll(PLACES)];
    return (href && all.find((one) => one.getAttribute("href") === href)) || (href ? null : all[place]);
  }

  function replaceMain(after) {
    const focused = main.contains(document.activeElement) ? document.activeElement : null;
    const place = focused ? [...main.querySelectorAll(PLACES)].indexOf(focused) : -1;
    const scrolled = [...main.querySelectorAll(SCROLLED)].map((one) => [one.scrollLeft, one.scrollTop]);
    main.replaceChildren(...after.childNodes);
    main.querySelectorAll(SCROLLED).forEach((one, index) => {
      if (scrolled[index]) [one.scrollLeft, one.scrollTop] = scrolled[index];
    });
    const again = focused && found(focused, place);
    if (again) again.focus({ preventScroll: true });
  }

  async function renew() {
    missed = busy || inUse();
    if (missed) return;
    busy = true;
    try {
      const answer = await fetch(location.href, { redirect: "error" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (inUse()) {
        missed = true;
      } else if (answer.ok) {
        replaceMain(page.getElementById("main"));
        document.title = page.title;
      } else {
        setTimeout(renew, AGAIN_MS);
      }
    } catch {
      setTimeout(renew, AGAIN_MS);
    } finally {
      busy = false;
      if (missed && !inUse()) renew();
    }
  }

  function listen() {
    source = new EventSource("/live");
    source.onmessage = renew;
    source.onopen = () => {
      news.textContent = "";
      renew(); // What happened before, while nobody listened.
    };
    source.onerror = () => {
      news.textContent = "The page is not live any more: perago ui has ended or cannot be reached.";
    };
  }

  // A browser has few connections to one server: a page that is not seen gives its own back.
  function followVisibility() {
    if (document.hidden && source) {
      source.close();
      source = null;
    } else if (!document.hidden && !source) {
      listen();
    }
  }

  const goOn = () => missed && renew();
  document.addEventListener("focusout", () => setTimeout(goOn));
  document.addEventListener("selectionchange", goOn);
  document.addEventListener("visibilitychange", followVisibility);
  window.addEventListener("pagehide", () => source && source.close());
  followVisibility();
})();
