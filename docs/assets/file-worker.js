// Browsers start no worker for a page that was opened from disk (file:). There, the search of the site
// gets this instead: the script runs in a hidden frame, whose messages are passed on.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inner = this.frame.contentWindow;
      inner.postMessage = (data) => {
        const message = new MessageEvent("message", { data: structuredClone(data) });
        setTimeout(() => {
          this.dispatchEvent(message);
          this.onmessage?.(message);
        });
      };
      inner.importScripts = async (...urls) => {
        for (const each of urls) await this.load(each);
      };
      this.ready = this.load(url);
    }

    load(url) {
      const script = this.frame.contentDocument.createElement("script");
      script.src = new URL(url, location.href).href;
      return new Promise((resolve, reject) => {
        script.onload = resolve;
        script.onerror = reject;
        this.frame.contentDocument.body.append(script);
      });
    }

    async postMessage(data) {
      await this.ready;
      const message = new MessageEvent("message", { data: structuredClone(data) });
      this.frame.contentWindow.dispatchEvent(message);
    }

    terminate() {
      this.frame.remove();
    }
  };
}
