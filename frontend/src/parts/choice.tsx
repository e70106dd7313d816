// A group of buttons, one of which is selected.

interface Props<V extends string | number> {
  label: string;
  options: readonly { value: V; text: string; title?: string }[];
  chosen: V;
  choose: (value: V) => void;
}

export function Choice<V extends string | number>({ label, options, chosen, choose }: Props<V>) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map(({ value, text, title }) => (
        <button
          type="button"
          key={value}
          aria-pressed={value === chosen}
          onClick={() => choose(value)}
          {...(title ? { title, "aria-label": title } : {})}
        >
          {text}
        </button>
      ))}
    </div>
  );
}
