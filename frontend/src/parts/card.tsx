// A panel: a heading, actions and content.
import type { ComponentChildren } from "preact";

interface Props {
  title: string;
  /** A short note after the heading. */
  about?: ComponentChildren;
  actions?: ComponentChildren;
  class?: string;
  children: ComponentChildren;
}

export function Card({ title, about, actions, children, ...rest }: Props) {
  return (
    <section class={`card ${rest.class ?? ""}`} aria-label={title}>
      <header class="card-head">
        <h2>{title}</h2>
        {about && <p class="about">{about}</p>}
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}
