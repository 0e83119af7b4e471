/**
 * Signs in at a service by its code host, as a browser does. The code host consents without a form.
 *
 * @returns the token of the session
 */
export async function signInAtHost(url: string): Promise<string> {
  const begun = await fetch(`${url}/auth/login?return_to=/ui`, { redirect: "manual" });
  const [cookie = ""] = (begun.headers.getSetCookie()[0] ?? "").split(";");
  const consent = await fetch(begun.headers.get("location") ?? "", { redirect: "manual" });
  const callback = new URL(consent.headers.get("location") ?? "");
  const ended = await fetch(`${url}${callback.pathname}${callback.search}`, {
    redirect: "manual",
    headers: { cookie },
  });
  const session = ended.headers.getSetCookie().find((line) => line.startsWith("svc_session=")) ?? "";
  return session.slice("svc_session=".length).split(";")[0] ?? "";
}
