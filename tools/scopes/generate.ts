/** Writes the generated tables of scopes anew: `sh tools/run.sh tools/scopes/generate.ts`. A test says when that is due. */
import { writeFileSync } from "node:fs";
import { GITEA_TABLE_FILE, giteaTableSource } from "./gitea-table.ts";
import { GRAPHQL_TABLE_FILE, graphqlTableSource } from "./graphql-table.ts";
import { REST_TABLE_FILE, restTableSource } from "./rest-table.ts";

writeFileSync(GITEA_TABLE_FILE, giteaTableSource());
writeFileSync(REST_TABLE_FILE, restTableSource());
writeFileSync(GRAPHQL_TABLE_FILE, graphqlTableSource());
