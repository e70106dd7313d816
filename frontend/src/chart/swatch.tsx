// The color and shape of lines and overlays, for the legend and the tooltip.
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

/** The expected range and its middle. */
export function BandSwatch() {
  return (
    <svg class="swatch expected" viewBox="0 0 16 12" width="16" height="12" aria-hidden="true">
      <rect width="16" height="12" fill="currentColor" fill-opacity="0.2" />
      <path d="M0 6H16" stroke="currentColor" stroke-width="1.25" stroke-dasharray="2 3" />
    </svg>
  );
}

/** A value outside the expected range. */
export function RingSwatch() {
  return (
    <svg class="swatch outside" viewBox="0 0 16 12" width="16" height="12" aria-hidden="true">
      <circle cx="8" cy="6" r="4.6" fill="none" stroke="currentColor" stroke-width="1.75" />
    </svg>
  );
}

/** The time before the retention. */
export function HatchSwatch() {
  return (
    <svg class="swatch hatched" viewBox="0 0 16 12" width="16" height="12" aria-hidden="true">
      <path d="M-2 8 8 -2M0 12 12 0M6 14 18 2" stroke="currentColor" stroke-width="1" />
      <rect x="0.5" y="0.5" width="15" height="11" fill="none" stroke="currentColor" />
    </svg>
  );
}
