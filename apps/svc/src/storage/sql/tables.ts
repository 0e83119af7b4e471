/** The tables as kysely sees them. Flags are 0 or 1 and lists are JSON text, so that every SQL database takes them. */
export interface Tables {
  cached_repositories: {
    id: string;
    owner: string;
    name: string;
    /** `owner/name` in lower case: what must be unique, and the order of lists. */
    key: string;
    enabled: number;
    timeout_seconds: number | null;
    max_cache_size_mb: number | null;
    created_at: number;
    updated_at: number;
    version: number;
  };
  users: {
    id: string;
    login: string;
    login_key: string;
    created_at: number;
    /** Sealed by SecretBox for `users/<id>`. */
    credential: string | null;
    credential_at: number | null;
    host_user_id: string | null;
    last_login_at: number | null;
  };
  sessions: {
    id: string;
    kind: string;
    token_hash: string;
    token_start: string;
    user_id: string;
    role: string;
    created_at: number;
    expires_at: number;
    name: string | null;
    created_ip: string | null;
    user_agent: string | null;
    last_seen_at: number | null;
    minted_by: string | null;
  };
  tokens: {
    id: string;
    type: string;
    token_hash: string;
    token_start: string;
    user_id: string;
    repositories: string;
    scopes: string;
    description: string | null;
    session_id: string | null;
    ip_allow: string;
    created_at: number;
    expires_at: number | null;
    revoked_at: number | null;
    last_used_at: number | null;
    last_ip: string | null;
    use_count: number;
    app_id: string | null;
    installation: string | null;
    requests_per_minute: number | null;
    minted_by: string | null;
  };
  apps: {
    id: string;
    app_id: string;
    slug: string;
    name: string;
    owner_login: string | null;
    client_id: string | null;
    /** Sealed by SecretBox for `apps/<id>/private_key`. */
    private_key: string;
    /** Sealed by SecretBox for `apps/<id>/webhook_secret`. */
    webhook_secret: string | null;
    is_default: number;
    source: string;
    created_at: number;
    updated_at: number;
    version: number;
  };
  one_time: {
    kind: string;
    key: string;
    /** Sealed by SecretBox for `one_time/<kind>/<key>`. */
    value: string;
    expires_at: number;
  };
  leases: {
    name: string;
    holder: string;
    expires_at: number;
  };
  audit: {
    id: string;
    at: number;
    action: string;
    outcome: string;
    actor_kind: string;
    actor_login: string | null;
    /** The login in lower case: what queries compare. */
    actor_key: string | null;
    credential_id: string | null;
    target: string | null;
    /** The target in lower case. */
    target_key: string | null;
    remote_address: string | null;
    request_id: string | null;
    /** A JSON object. */
    details: string | null;
  };
}
