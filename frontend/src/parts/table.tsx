// Rows as a table: one column per figure, and a first one that names the row and links to its page.
import type { ComponentChildren } from "preact";
import { follow } from "./go";

export interface Column<R> {
  title: string;
  cell: (row: R) => ComponentChildren;
  /** The order by which this column sorts the table, descending. */
  order?: string;
  /** The class of its cells. */
  class?: string;
  /** Whether its title is read out only. */
  untitled?: boolean;
}

interface Props<R> {
  /** A name for the part that scrolls sideways; without one, it does not. */
  label?: string;
  class?: string;
  rows: readonly R[];
  keyOf: (row: R) => string | number;
  rowClass?: (row: R) => string;
  columns: readonly (Column<R> | false)[];
  order?: string | undefined;
  sort?: ((order: string) => void) | undefined;
}

export function Table<R>({ label, rows, keyOf, rowClass, columns, order, sort, ...rest }: Props<R>) {
  const shown = columns.filter((each) => each !== false);
  const [first, ...others] = shown;
  const table = (
    <table class={`list ${rest.class ?? ""}`}>
      <thead>
        <tr>
          {shown.map((each, i) => (
            <th
              key={each.title}
              scope="col"
              class={i === 0 ? "" : (each.class ?? "figure")}
              {...(sort && each.order
                ? { "aria-sort": each.order === order ? ("descending" as const) : ("none" as const) }
                : {})}
            >
              {sort && each.order ? (
                <button type="button" class="sort" onClick={() => sort(each.order ?? "")}>
                  {each.title}
                </button>
              ) : (
                <span class={each.untitled ? "away" : ""}>{each.title}</span>
              )}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)} class={rowClass ? rowClass(row) : "to-row"} onClick={follow}>
            <th scope="row" class={first?.class ?? "grow"}>
              {first?.cell(row)}
            </th>
            {others.map((each) => (
              <td key={each.title} class={each.class ?? "figure"}>
                {each.cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
  if (!label) return table;
  return (
    <div class="scroll" role="region" aria-label={`Table: ${label}`} tabIndex={0}>
      {table}
    </div>
  );
}
