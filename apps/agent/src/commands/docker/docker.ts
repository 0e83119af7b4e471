export { register } from "./register.ts";
export { list, release } from "./volumes.ts";
