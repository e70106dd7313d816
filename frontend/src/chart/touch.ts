// A horizontal drag by touch zooms, as one by mouse does; a vertical one scrolls the page (see charts.css).
// uPlot only listens to a mouse, so a drag is passed on as one; it ignores moves of no distance.

/** Pixels after which a touch is a drag, and not a tap. */
const DISTANCE = 8;

export function dragByTouch(over: HTMLElement): void {
  let began: PointerEvent | null = null;
  let dragged = false;
  const pass = (type: string, { clientX, clientY }: PointerEvent) =>
    over.dispatchEvent(new MouseEvent(type, { clientX, clientY, movementX: 1, button: 0, bubbles: true }));
  const end = (event: PointerEvent) => {
    if (dragged) pass("mouseup", event);
    began = null;
    dragged = false;
  };
  over.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" && event.isPrimary) began = event;
  });
  over.addEventListener("pointermove", (event) => {
    if (!began || event.pointerId !== began.pointerId) return;
    if (!dragged && Math.abs(event.clientX - began.clientX) >= DISTANCE) {
      dragged = true;
      pass("mousemove", began);
      pass("mousedown", began);
    }
    if (dragged) pass("mousemove", event);
  });
  over.addEventListener("pointerup", end);
  over.addEventListener("pointercancel", end);
}
