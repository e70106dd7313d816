// A share as a number over a bar.
import { percent } from "../lib/units";

export function Share({ share, tone = "" }: { share: number | null; tone?: string }) {
  if (share === null) return <span class="faint">–</span>;
  const width = Math.min(100, Math.max(0, share * 100));
  return (
    <span class={`share ${tone}`}>
      <span class="share-text">{percent(share)}</span>
      <span class="share-bar" aria-hidden="true">
        <span style={{ width: `${width.toFixed(1)}%` }} />
      </span>
    </span>
  );
}
