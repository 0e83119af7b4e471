// Reads documents with the readers of npm: JSON cases on standard input, their values on standard output.
import { text } from "node:stream/consumers";
import { parseEnv } from "node:util";
import * as dotenv from "dotenv";
import * as ini from "ini";
import * as yaml from "yaml";

const follow = (document, path) => path.reduce((inner, key) => inner[key], document);

const READERS = {
  // The package takes dots in section names apart; these paths have none.
  ini: (content, path) => follow(ini.parse(content), path),
  // The parser of `node --env-file`.
  "node --env-file": (content, path) => parseEnv(content)[path[0]],
  yaml: (content, path) => follow(yaml.parse(content), path),
  "yaml (1.1)": (content, path) => follow(yaml.parse(content, { version: "1.1" }), path),
  dotenv: (content, path) => dotenv.parse(content)[path[0]],
};

function answer({ reader, text: content, path }) {
  try {
    const value = READERS[reader](content, path);
    if (reader === "ini" && typeof value !== "string") return { error: `not text: ${String(value)}` };
    return { value: String(value) };
  } catch (error) {
    return { error: String(error) };
  }
}

process.stdout.write(JSON.stringify(JSON.parse(await text(process.stdin)).map(answer)));
