// Browsers start no worker from file://, and the site's search is one. There, a hidden frame takes its place.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.appendChild(frame)
      this.scope = frame.contentWindow
      window.addEventListener("message", (event) => {
        if (event.source !== this.scope) return
        const copy = new MessageEvent("message", { data: event.data })
        this.dispatchEvent(copy)
        if (this.onmessage) this.onmessage(copy)
      })
      const scope = this.scope
      scope.importScripts = (...urls) =>
        urls.reduce((before, next) => before.then(() => load(scope, next)), Promise.resolve())
      // Written inside the frame, so that the frame is the source of the message.
      const script = scope.document.createElement("script")
      script.text = 'postMessage = (data) => parent.postMessage(data, "*")'
      scope.document.body.appendChild(script)
      this.ready = load(scope, url)
    }

    postMessage(data) {
      this.ready.then(() =>
        this.scope.dispatchEvent(new MessageEvent("message", { data, source: window })))
    }

    terminate() {
      this.scope.frameElement.remove()
    }
  }

  const load = (scope, url) =>
    new Promise((resolve, reject) => {
      const script = scope.document.createElement("script")
      script.src = url
      script.onload = resolve
      script.onerror = reject
      scope.document.body.appendChild(script)
    })
}
