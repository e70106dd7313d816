// Severities as the page filters by them: one, or errors of both kinds together.

/** Both severities that count as an error, as the tile "Errors logged" counts them. */
export const ERRORS = "critical,error";

/** The severities that a filter stands for, as the API takes them; none: all of them. */
export function severitiesOf(filter: string): string[] {
  if (filter === ERRORS) return ERRORS.split(",");
  return filter ? [filter] : [];
}
