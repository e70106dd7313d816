// The colour and shape of a line, as the legend and the tip show it.
import { colourOf, outline, shapeOf } from "./palette";

export function Swatch({ place, off = false }: { place: number; off?: boolean }) {
  const points = outline(shapeOf(place), 8, 6, 3.4).map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`);
  return (
    <svg
      class={off ? "swatch off" : "swatch"}
      viewBox="0 0 16 12"
      width="16"
      height="12"
      aria-hidden="true"
      style={{ color: `var(${colourOf(place)})` }}
    >
      <path d="M0 6H16" stroke="currentColor" stroke-width="1.75" />
      <polygon points={points.join(" ")} fill="currentColor" />
    </svg>
  );
}
