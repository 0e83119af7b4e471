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
  };
}
