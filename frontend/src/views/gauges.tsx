// Lists gauges where a view is empty: gauges are not summed over label sets, so a name without labels has no
// values of its own, and a store may contain only gauges.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Empty } from "../parts/empty";
import { ToSeries } from "../parts/go";
import { Name } from "../parts/text";
import { set } from "../state/page";
import { gaugesOf } from "./names";

/** The gauges of these names, or all gauges if there are no names; the children if none is stored. */
export function Gauges({
  names,
  chart = false,
  children,
}: {
  names: readonly string[];
  chart?: boolean;
  children: ComponentChildren;
}) {
  const [found, setFound] = useState<readonly string[]>([]);
  const key = names.join("\n");
  useEffect(() => {
    const under = new AbortController();
    setFound([]);
    gaugesOf(key === "" ? [] : key.split("\n"), under.signal).then(setFound, () => undefined);
    return () => under.abort();
  }, [key]);
  if (found.length === 0) return <>{children}</>;
  return (
    <>
      <Empty title={names.length === 0 ? "Only gauges are stored" : "This is a gauge with labels"}>
        Gauges are not summed over label sets. Choose a series.{" "}
        {chart && (
          <button type="button" class="quiet" onClick={() => set({ series: [...found] }, true)}>
            Show them in the chart
          </button>
        )}
      </Empty>
      <ul class="breakdown">
        {found.map((each) => (
          <li key={each}>
            <ToSeries name={each}>
              <Name name={each} />
            </ToSeries>
          </li>
        ))}
      </ul>
    </>
  );
}
