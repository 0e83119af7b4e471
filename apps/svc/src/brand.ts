/** The one place with the names that carry the service's brand. */
export const BRAND = {
  command: "svc",
  environmentPrefix: "SVC",
  metricPrefix: "svc",
  /** Session and administration tokens. */
  adminTokenPrefix: "svcr_",
  /** Proxy tokens: stand for the user's own credential within scopes. */
  proxyTokenPrefix: "svcx_",
  /** Agent tokens: stand for an app installation within scopes. */
  agentTokenPrefix: "svca_",
  cacheHeader: "X-Svc-Cache",
  /** Scopes of the token that a response of the API is for. */
  scopesHeader: "X-Svc-Scopes",
} as const;
