export { OauthClient, type OauthClientOptions, type OauthTokens } from "./oauth-client.ts";
export { OauthError } from "./errors.ts";
