// An empty panel: what would fill it, with a line to copy; or that a part of it may be unreachable.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { link } from "../state/live";

/** What makes a web application count its requests. */
export const MIDDLEWARE =
  "from redmeter.integrations.asgi import RedmeterMiddleware; app.add_middleware(RedmeterMiddleware)";

/** A line of code or a command, and a button that copies it. */
export function Code({ code }: { code: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(code);
      setCopied(true);
      setTimeout(() => setCopied(false), 2000);
    } catch {
      // No clipboard without a secure origin: the text can be selected.
    }
  };
  return (
    <div class="code">
      <code tabIndex={0}>{code}</code>
      {navigator.clipboard && (
        <button type="button" class="quiet" onClick={() => void copy()}>
          {copied ? "Copied" : "Copy"}
        </button>
      )}
    </div>
  );
}

export function Empty({
  title,
  code,
  children,
}: {
  title: string;
  code?: string;
  children?: ComponentChildren;
}) {
  if (link.value.missing.length > 0)
    return (
      <div class="empty">
        <p class="empty-title">{title}</p>
        <p>A part of the store is away, and there may be more there.</p>
      </div>
    );
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <p>{children}</p>}
      {code && <Code code={code} />}
    </div>
  );
}
