// The head of a column of figures; a button where the table can be sorted by it.

interface Props {
  title: string;
  /** Whether the table is sorted by it, descending. */
  chosen?: boolean;
  sort?: (() => void) | undefined;
}

export function Head({ title, chosen = false, sort }: Props) {
  return (
    <th
      scope="col"
      class="figure"
      {...(sort ? { "aria-sort": chosen ? ("descending" as const) : ("none" as const) } : {})}
    >
      {sort ? (
        <button type="button" class="sort" onClick={sort}>
          {title}
        </button>
      ) : (
        title
      )}
    </th>
  );
}
