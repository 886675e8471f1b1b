// Takes over the main part of the page whenever the server says that something has changed.
"use strict";

(() => {
  const kind = document.body.dataset.live;
  if (!kind || !window.EventSource) return;
  const news = document.getElementById("news");
  let busy = false;
  let again = false;

  function keepPlace(before, after) {
    const focused = document.activeElement;
    const place = focused && before.contains(focused) ? [...before.querySelectorAll("a, button, input, select, [tabindex]")].indexOf(focused) : -1;
    const scrolled = [...before.querySelectorAll(".wide")].map((one) => [one.scrollLeft, one.scrollTop]);
    before.replaceChildren(...after.childNodes);
    before.querySelectorAll(".wide").forEach((one, index) => {
      if (scrolled[index]) [one.scrollLeft, one.scrollTop] = scrolled[index];
    });
    const again = before.querySelectorAll("a, button, input, select, [tabindex]")[place];
    if (again) again.focus({ preventScroll: true });
  }

  async function renew() {
    if (busy) {
      again = true;
      return;
    }
    const main = document.getElementById("main");
    // A list that is open or a text that is being written is not taken away.
    if (main.contains(document.activeElement) && ["SELECT", "INPUT", "TEXTAREA"].includes(document.activeElement.tagName)) return;
    busy = true;
    try {
      const answer = await fetch(location.href, { redirect: "error" });
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        keepPlace(main, page.getElementById("main"));
        document.title = page.title;
        news.textContent = "";
      }
    } finally {
      busy = false;
      if (again) {
        again = false;
        renew();
      }
    }
  }

  const source = new EventSource("/live");
  source.onmessage = renew;
  source.onerror = () => {
    news.textContent = "The page is not live any more: perago ui has ended or cannot be reached.";
  };
  source.onopen = () => {
    news.textContent = "";
  };
})();
