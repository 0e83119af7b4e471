// Health check of the image: exit code 0 if the service answers. HEALTHCHECK_URL names another address than that of the image.
import { get } from "node:http";

const url = process.env["HEALTHCHECK_URL"] ?? "http://127.0.0.1:8080/healthz";
get(url, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1)).on("error", () => process.exit(1));
