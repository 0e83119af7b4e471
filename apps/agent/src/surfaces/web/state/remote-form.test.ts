import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { PEER_OFFERS } from "../../../config/sections/peer-offers.ts";
import { remoteView } from "../../forwards/memory-remotes.test-kit.ts";
import {
  changedSettings,
  formOf,
  hostFaults,
  NEW_REMOTE_FORM,
  packForm,
  sentForm,
  unpackForm,
  type RemoteForm,
} from "./remote-form.ts";

/** A form that is sent with every offer, and with changed fields. */
function sent(
  fields: Readonly<Record<string, string>> = {},
  offers: readonly string[] = PEER_OFFERS,
): RemoteForm {
  const all = { ...Object.fromEntries(offers.map((offer) => [`offer.${offer}`, "on"])), ...fields };
  return sentForm(new URLSearchParams({ ask: "never", lend: "child", ...all }));
}

describe("the form of a remote", () => {
  it("an empty form sets nothing", () => {
    assert.deepEqual(sent(), NEW_REMOTE_FORM);
    assert.deepEqual(changedSettings(sent(), NEW_REMOTE_FORM), { edit: {}, faults: new Map() });
  });

  it("typed settings are read with their types", () => {
    const form = sent(
      {
        port: " 2222 ",
        user: "ada",
        proxy_jump: "jump.example.com",
        remote_socket: "~/a.sock",
        policies: "one, two ,",
        policies_strict: "on",
        token_ttl: "1h30m",
        ask: "always",
        lend: "own",
      },
      ["token", "browse"],
    );
    assert.deepEqual(changedSettings(form, NEW_REMOTE_FORM).edit, {
      port: 2222,
      user: "ada",
      proxy_jump: "jump.example.com",
      remote_socket: "~/a.sock",
      policies: ["one", "two"],
      policies_strict: true,
      token_ttl: 5_400_000,
      ask: "always",
      lend: "own",
      offers: ["token", "browse"],
    });
  });

  it("only changed settings are saved, and an emptied one takes its default again", () => {
    const remote = remoteView("a", { port: 2222, user: "ada", policies: ["one"], ask: "first" });
    const before = formOf(remote);
    assert.deepEqual(changedSettings(before, before).edit, {});
    const after: RemoteForm = {
      ...before,
      texts: { ...before.texts, port: "", policies: "", ask: "never", user: "bob" },
    };
    assert.deepEqual(changedSettings(after, before).edit, {
      port: null,
      policies: null,
      ask: null,
      user: "bob",
    });
  });

  for (const [name, value] of [
    ["port", "ssh"],
    ["port", "0"],
    ["port", "65536"],
    ["port", "22.5"],
    ["user", "-oProxyCommand=x"],
    ["proxy_jump", "-oProxyCommand=x"],
    ["remote_socket", "relative"],
    ["remote_socket", `/${"x".repeat(103)}`],
    ["token_ttl", "soon"],
    ["token_ttl", "1s"],
    ["ask", "sometimes"],
    ["lend", "all"],
  ] as const) {
    it(`${name} cannot be ${value.slice(0, 20)}`, () => {
      const { edit, faults } = changedSettings(sent({ [name]: value }), NEW_REMOTE_FORM);
      assert.deepEqual([edit, [...faults.keys()]], [{}, [name]]);
    });
  }

  it("a host has no option, user, path or space in it", () => {
    for (const host of ["", "-oProxyCommand=x", "a b", "ada@a", "a/b", "a\nb", "<b>"]) {
      assert.equal(hostFaults(host).size, 1, host);
    }
    for (const host of ["a", "build.example.com", "192.0.2.1", "fe80::1%eth0"]) {
      assert.equal(hostFaults(host).size, 0, host);
    }
  });

  it("comes back from a page as it was, and other texts are refused", () => {
    fc.assert(
      fc.property(fc.record({ port: fc.string(), user: fc.string(), policies: fc.string() }), (texts) => {
        const form = { ...NEW_REMOTE_FORM, texts: { ...NEW_REMOTE_FORM.texts, ...texts } };
        assert.deepEqual(unpackForm(packForm(form)), form);
      }),
    );
    for (const text of [null, "", "{", "null", "[]", "{}", '{"texts":{}}', '{"texts":null,"offers":[]}']) {
      assert.equal(unpackForm(text), undefined, String(text));
    }
  });
});
