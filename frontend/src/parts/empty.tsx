// An empty panel: how to fill it, with code to copy, or a note that part of the store is unreachable.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { link } from "../state/live";

/** Code that counts the requests of a web application. */
export const MIDDLEWARE =
  "from redmeter.integrations.asgi import RedmeterMiddleware; app.add_middleware(RedmeterMiddleware)";

/** Lines of code that start recording, by framework or library. */
export type Setup = readonly (readonly [name: string, code: string])[];

/** Code that records database statements. */
export const STATEMENTS: Setup = [
  ["SQLAlchemy", "from redmeter.integrations.sqlalchemy import install; install(engine)"],
  ["Django", "from redmeter.integrations.django_db import install; install()"],
];

/** Code that records background tasks. */
export const TASKS: Setup = [
  ["Celery", "from redmeter.integrations.celery import install; install(app)"],
  ["RQ", "from redmeter.integrations.rq import install; install()"],
  [
    "Other queues",
    'with meter.timer("task_seconds", labels={"task": name}): run(); meter.count("task_runs", labels={"task": name, "state": "success"})',
  ],
];

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
  setup = [],
  children,
}: {
  title: string;
  code?: string;
  setup?: Setup;
  children?: ComponentChildren;
}) {
  if (link.value.missing.length > 0)
    return (
      <div class="empty">
        <p class="empty-title">{title}</p>
        <p>Part of the store is unreachable, so data may be missing.</p>
      </div>
    );
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <p>{children}</p>}
      {code && <Code code={code} />}
      {setup.map(([name, line]) => (
        <div key={name} class="setup">
          <span>{name}</span>
          <Code code={line} />
        </div>
      ))}
    </div>
  );
}
