// A figure without a link, in the look of a tile.

export function Figure({ title, value, note }: { title: string; value: string; note: string }) {
  const [figure = "", ...unit] = value.split(" ");
  return (
    <li>
      <div class="tile">
        <span class="tile-title">{title}</span>
        <span class="tile-value">
          {figure}
          {unit.length > 0 && <small> {unit.join(" ")}</small>}
        </span>
        <span class="tile-foot faint">{note}</span>
      </div>
    </li>
  );
}
