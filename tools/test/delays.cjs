"use strict";
/**
 * Loaded before a program (`node --require`): everything that may take any time on a real machine does so now and then.
 * Calls of node:fs/promises and of file handles wait before and after, servers begin to listen late, connections, requests
 * and the ends of child processes are told late, and timers are late. Order is kept where the system keeps it.
 * `DELAY_SHARE` (default 0.05) of the calls wait up to `DELAY_MS` (default 60).
 */
const { ChildProcess } = require("node:child_process");
const fs = require("node:fs");
const net = require("node:net");
const timers = require("node:timers");
const promised = require("node:timers/promises");
const { syncBuiltinESMExports } = require("node:module");

const SHARE = Number(process.env["DELAY_SHARE"] ?? 0.05);
const MAX_MS = Number(process.env["DELAY_MS"] ?? 60);
/** A start is rare: more of them wait, and longer. */
const LISTEN_SHARE = 0.3;
const LISTEN_MAX_MS = 3 * MAX_MS;
// The real one, also if a test replaces it.
const later = setTimeout;

const isDue = () => Math.random() < SHARE;
const pause = () => new Promise((resolve) => later(resolve, Math.random() * MAX_MS));
const slow = (real) =>
  async function slowed(...args) {
    if (isDue()) await pause();
    const result = await real.apply(this, args);
    if (isDue()) await pause();
    return result;
  };
const slowMethods = (object, names) => {
  for (const name of names) if (typeof object[name] === "function") object[name] = slow(object[name]);
};

slowMethods(fs.promises, [
  ..."access chmod copyFile link lstat mkdir mkdtemp open readFile readdir readlink realpath".split(" "),
  ..."rename rm rmdir stat symlink truncate unlink utimes writeFile".split(" "),
]);
const open = fs.promises.open;
let handlesAreSlow = false;
fs.promises.open = async (...args) => {
  const handle = await open(...args);
  if (!handlesAreSlow) {
    handlesAreSlow = true;
    slowMethods(
      Object.getPrototypeOf(handle),
      "datasync read readFile stat sync truncate write writeFile writev".split(" "),
    );
  }
  return handle;
};

// oxlint-disable-next-line typescript/unbound-method -- called with each server below
const { listen, emit } = net.Server.prototype;
net.Server.prototype.listen = function slowListen(...args) {
  if (Math.random() >= LISTEN_SHARE) return listen.apply(this, args);
  later(() => {
    try {
      listen.apply(this, args);
    } catch (error) {
      emit.call(this, "error", error);
    }
  }, Math.random() * LISTEN_MAX_MS);
  return this;
};
net.Server.prototype.emit = function slowEmit(event, ...args) {
  if ((event !== "connection" && event !== "request") || !isDue()) return emit.call(this, event, ...args);
  later(() => emit.call(this, event, ...args), Math.random() * MAX_MS);
  return true;
};

// oxlint-disable-next-line typescript/unbound-method -- called with each child process below
const tell = ChildProcess.prototype.emit;
/** Events that each child process has still to deliver, in order. */
const untold = new WeakMap();
ChildProcess.prototype.emit = function lateEmit(event, ...args) {
  const queue = untold.get(this);
  if (!["spawn", "exit", "close"].includes(event) || (queue === undefined && !isDue())) {
    return tell.call(this, event, ...args);
  }
  if (queue !== undefined) return queue.push([event, args]) > 0;
  const events = [[event, args]];
  untold.set(this, events);
  later(() => {
    untold.delete(this);
    for (const [name, words] of events) tell.call(this, name, ...words);
  }, Math.random() * MAX_MS);
  return true;
};

const late = (ms = 0) => ms + (isDue() ? Math.random() * MAX_MS : 0);
const lateTimeout = (callback, ms, ...args) => later(callback, late(ms), ...args);
// `util.promisify` finds its own form there.
Object.defineProperties(lateTimeout, Object.getOwnPropertyDescriptors(later));
globalThis.setTimeout = lateTimeout;
timers.setTimeout = lateTimeout;
const sleep = promised.setTimeout;
promised.setTimeout = (ms, ...args) => sleep(late(ms), ...args);

syncBuiltinESMExports();
