export {
  OauthClient,
  type DeviceAuthorization,
  type OauthClientOptions,
  type OauthTokens,
} from "./oauth-client.ts";
export { OauthError, type OauthErrorCode } from "./errors.ts";
