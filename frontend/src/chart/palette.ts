// The colors and shapes of lines. Colors are custom properties of the style sheets, so that only these
// define themes; shapes distinguish lines if colors do not.

/** Number of colors: --c1 and on. */
const COLOURS = 8;

export const SHAPES = ["circle", "square", "triangle", "diamond", "cross"] as const;
export type Shape = (typeof SHAPES)[number];

/** The place of a line that others are compared with. */
export const FAINT = -1;

export const colourOf = (index: number) => (index === FAINT ? "--expected" : `--c${(index % COLOURS) + 1}`);

export function shapeOf(index: number): Shape {
  if (index === FAINT) return "cross";
  return SHAPES[(index + Math.floor(index / COLOURS)) % SHAPES.length] ?? "circle";
}

let version = -1;
const values = new Map<string, string>();

/** The value of a custom property; `now` is the count of palette changes. */
export function css(name: string, now: number): string {
  if (now !== version) {
    version = now;
    values.clear();
  }
  let value = values.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    values.set(name, value);
  }
  return value;
}

/** The path of a shape around a point, `size` pixels from it: for canvases and SVG alike. */
export function outline(shape: Shape, x: number, y: number, size: number): [number, number][] {
  const s = size;
  if (shape === "square")
    return [
      [x - s, y - s],
      [x + s, y - s],
      [x + s, y + s],
      [x - s, y + s],
    ];
  if (shape === "triangle")
    return [
      [x, y - s * 1.2],
      [x + s * 1.2, y + s],
      [x - s * 1.2, y + s],
    ];
  if (shape === "diamond")
    return [
      [x, y - s * 1.3],
      [x + s * 1.3, y],
      [x, y + s * 1.3],
      [x - s * 1.3, y],
    ];
  if (shape === "cross") {
    const t = s * 0.45;
    return [
      [x - t, y - s * 1.2],
      [x + t, y - s * 1.2],
      [x + t, y - t],
      [x + s * 1.2, y - t],
      [x + s * 1.2, y + t],
      [x + t, y + t],
      [x + t, y + s * 1.2],
      [x - t, y + s * 1.2],
      [x - t, y + t],
      [x - s * 1.2, y + t],
      [x - s * 1.2, y - t],
      [x - t, y - t],
    ];
  }
  return Array.from({ length: 16 }, (_, i) => {
    const angle = (i / 16) * 2 * Math.PI;
    return [x + s * Math.cos(angle), y + s * Math.sin(angle)];
  });
}
