// Links within the page: real addresses, so that they open in new tabs, and a step of the history.
import type { ComponentChildren } from "preact";
import { go, state } from "../state/page";
import { elsewhere, serialise, type State, type View } from "../state/url";

interface Props {
  view: View;
  more?: Partial<State>;
  class?: string;
  current?: boolean;
  label?: string;
  children: ComponentChildren;
}

export function Go({ view, more = {}, current = false, label, children, ...rest }: Props) {
  const to = elsewhere(state.value, view, more);
  return (
    <a
      href={serialise(to) || "./"}
      {...rest}
      {...(current ? { "aria-current": "page" as const } : {})}
      {...(label ? { "aria-label": label } : {})}
      onClick={(event) => {
        if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        go(to);
      }}
    >
      {children}
    </a>
  );
}

/** To the page of a series. */
export function ToSeries({
  name,
  children,
  ...rest
}: {
  name: string;
  class?: string;
  children: ComponentChildren;
}) {
  return (
    <Go view="series" more={{ name }} {...rest}>
      {children}
    </Go>
  );
}

/** A click anywhere in a row follows the row's first link; a selection of text or another control does not. */
export function follow(event: MouseEvent & { currentTarget: HTMLElement }): void {
  const at = event.target as Element;
  if (at.closest("a, button, input, summary, pre") || String(getSelection()) !== "") return;
  event.currentTarget.querySelector("a")?.click();
}
