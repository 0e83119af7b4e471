import { readdirSync, readFileSync } from "node:fs";
import { cpuSecondsOf } from "@devplat/testkit";

/** CPU seconds of a process and of all its descendants, with those that have ended, in steps of 10 ms. */
export function treeCpuSeconds(pid: number): number {
  const children = childrenByParent();
  let sum = 0;
  const open = [pid];
  for (let each = open.pop(); each !== undefined; each = open.pop()) {
    try {
      const { own, children: ended } = cpuSecondsOf(each);
      sum += own + ended;
    } catch {
      // It ended after the list was read. Its parent counts it now.
    }
    open.push(...(children.get(each) ?? []));
  }
  return sum;
}

function childrenByParent(): Map<number, number[]> {
  const children = new Map<number, number[]>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
      const list = children.get(parent);
      if (list === undefined) children.set(parent, [Number(name)]);
      else list.push(Number(name));
    } catch {
      // The process ended after the list was read.
    }
  }
  return children;
}
