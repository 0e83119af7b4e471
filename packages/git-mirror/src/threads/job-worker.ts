/** Module that a job thread runs. It answers each job with one message, one job after another. */
import { parentPort } from "node:worker_threads";
import { giveWayInThread } from "./give-way.ts";
import { replyTo, type JobMessage } from "./job-reply.ts";
import { lowerThreadPriority } from "./thread-priority.ts";

lowerThreadPriority();
giveWayInThread();
parentPort?.on("message", (message: JobMessage) => void replyTo(message));
