export { visible, visibleJson, visibleJsonText } from "./visible.ts";
export { tableLines } from "./table.ts";
export { dropUnreadOutput, noteLine, noteText, printJson, printLine, printText } from "./output.ts";
