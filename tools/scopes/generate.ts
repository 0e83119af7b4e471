/** Writes the generated tables of scopes anew: `sh tools/run.sh tools/scopes/generate.ts`. A test says when that is due. */
import { writeFileSync } from "node:fs";
import { GRAPHQL_TABLE_FILE, graphqlTableSource } from "./graphql-table.ts";
import { REST_TABLE_FILE, restTableSource } from "./rest-table.ts";

writeFileSync(REST_TABLE_FILE, restTableSource());
writeFileSync(GRAPHQL_TABLE_FILE, graphqlTableSource());
