/**
 * Fields of a user that everybody sees: GitHub's "Public User", and Gitea's user without what only the user and admins are
 * shown. `GET /user` gives every token the name of its account; plan, two-factor state, private counts and addresses stay here.
 */
const PUBLIC_FIELDS: ReadonlySet<string> = new Set([
  "avatar_url",
  "bio",
  "blog",
  "company",
  "created",
  "created_at",
  "description",
  "followers",
  "followers_count",
  "following",
  "following_count",
  "full_name",
  "gravatar_id",
  "hireable",
  "id",
  "location",
  "login",
  "name",
  "node_id",
  "public_gists",
  "public_repos",
  "site_admin",
  "starred_repos_count",
  "twitter_username",
  "type",
  "updated_at",
  "url",
  "user_view_type",
  "username",
  "visibility",
  "website",
]);

/** Also every `…_url`: addresses of what is public of the user. */
export function isPublicProfileField(field: string): boolean {
  return PUBLIC_FIELDS.has(field) || field.endsWith("_url");
}
