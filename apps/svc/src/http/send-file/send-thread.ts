import { parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import type { SendReport, ThreadMessage } from "./messages.ts";
import { Transfers } from "./transfers.ts";

const port = parentPort!;
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker thread, not a window
const report = (sent: SendReport): void => port.postMessage(sent);
const transfers = new Transfers(workerData as number, report);

function take(message: ThreadMessage): void {
  if (message.kind === "send") transfers.begin(message.job);
  else transfers.stop(message.id);
}

// While nothing is sent, the thread waits in its event loop, where it can be ended.
port.on("message", (message: ThreadMessage) => {
  take(message);
  while (transfers.size > 0) {
    transfers.turn();
    for (let next = receiveMessageOnPort(port); next !== undefined; next = receiveMessageOnPort(port)) {
      take(next.message as ThreadMessage);
    }
  }
});
