// The hours that messages are compared by, in words: sliding hours, or clock hours where the counts by five
// minutes do not cover two hours yet.

/** Name of the last hour. */
export const lastHour = (sliding: boolean) => (sliding ? "last 60 min" : "this clock hour");

/** Name of the compared hour. */
export const hourBefore = (sliding: boolean) =>
  sliding ? "the 60 min before" : "the same part of the hour before";

/** The hours that a list compares; some of its loggers and severities may only have clock hours. */
export function comparison({ compared, clock_hours }: { compared: number; clock_hours: number }) {
  const sliding = clock_hours === 0 || clock_hours < compared;
  const mixed = clock_hours > 0 && clock_hours < compared;
  const rest = mixed ? `; clock hours for ${clock_hours} of ${compared} loggers and severities` : "";
  return `${lastHour(sliding)} vs ${hourBefore(sliding)}${rest}`;
}
