// Findings of the health check, and their fixes.
import type { Finding, Level } from "../api/types";
import { spaced } from "../lib/units";
import { T } from "../parts/text";
import { Code } from "../parts/empty";

const WORDS = {
  ok: "Store healthy",
  warn: "Warnings",
  fail: "Something is broken",
} as const;

export function Findings({
  level,
  findings,
  all = false,
}: {
  level: Level;
  findings: readonly Finding[];
  all?: boolean;
}) {
  return (
    <>
      <p class={`level ${level}`}>
        <span class={`dot ${level}`} aria-hidden="true" /> {WORDS[level]}
      </p>
      {findings.length > 0 && (
        <ul class="findings">
          {findings.map((finding, i) => (
            <li key={`${finding.topic} ${i}`}>
              <span class={`dot ${finding.level}`}>
                <span class="away">{finding.level}</span>
              </span>
              <div class="grow">
                <p>
                  {all && (
                    <b>
                      <T text={finding.topic} most={60} />{" "}
                    </b>
                  )}
                  <T text={spaced(finding.text)} most={600} />
                </p>
                {finding.fix &&
                  (/^(redmeter|CONFIG|systemctl) /.test(finding.fix) ? (
                    <Code code={finding.fix} />
                  ) : (
                    <p class="faint">
                      <T text={finding.fix} most={600} />
                    </p>
                  ))}
              </div>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
