/* Loaded before a program (`--import`): its wall clock is SHIFT_MS milliseconds ahead. Its monotonic clock is not changed. */
const shiftMs = Number(process.env["SHIFT_MS"] ?? 0);
const { now } = Date;
const RealDate = Date;
Date.now = () => now() + shiftMs;
globalThis.Date = new Proxy(RealDate, {
  construct: (target, parameters: [], newTarget) =>
    Reflect.construct(target, parameters.length === 0 ? [now() + shiftMs] : parameters, newTarget) as object,
});
