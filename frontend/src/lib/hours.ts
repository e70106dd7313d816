// The hours that messages are compared by, in words: sliding hours, or clock hours where the counts by five
// minutes do not cover two hours yet.

/** What the last hour is. */
export const lastHour = (sliding: boolean) => (sliding ? "last 60 min" : "this clock hour");

/** What it is compared with. */
export const hourBefore = (sliding: boolean) =>
  sliding ? "the 60 min before" : "the same part of the hour before";

/** What a list compares, of which some loggers and severities may only have clock hours. */
export function comparison({ compared, clock_hours }: { compared: number; clock_hours: number }) {
  const sliding = clock_hours === 0 || clock_hours < compared;
  const some = clock_hours > 0 && clock_hours < compared;
  const rest = some ? `; clock hours for ${clock_hours} of ${compared} loggers and severities` : "";
  return `${lastHour(sliding)} vs ${hourBefore(sliding)}${rest}`;
}
