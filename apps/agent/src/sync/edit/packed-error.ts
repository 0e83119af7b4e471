import type { Remedy } from "@devplat/base";
import { DocumentEditError, type DocumentEditErrorCode } from "@devplat/document-edit";
import { AgentError, type AgentErrorCode } from "../../errors.ts";

/** An error that crosses threads, where it would lose its class. */
export type PackedError =
  | {
      readonly kind: "document";
      readonly code: DocumentEditErrorCode;
      readonly message: string;
      readonly line: number;
      readonly column: number;
    }
  | {
      readonly kind: "agent";
      readonly code: AgentErrorCode;
      readonly message: string;
      readonly hint: string | undefined;
      readonly remedy: Remedy;
    }
  | { readonly kind: "internal"; readonly name: string };

/** For a fault in the program only its name is sent, because its message could quote a value. */
export function packError(error: unknown): PackedError {
  if (error instanceof DocumentEditError) {
    const { code, message, line, column } = error;
    return { kind: "document", code, message, line, column };
  }
  if (error instanceof AgentError) {
    const { code, message, hint, remedy } = error;
    return { kind: "agent", code, message, hint, remedy };
  }
  return { kind: "internal", name: error instanceof Error ? error.name : typeof error };
}

/** The error that was packed. */
export function unpackError(packed: PackedError): Error {
  if (packed.kind === "document") return new DocumentEditError(packed.code, packed.message, packed);
  if (packed.kind === "agent") {
    const { code, message, hint, remedy } = packed;
    return new AgentError(code, message, { remedy, ...(hint !== undefined && { hint }) });
  }
  const error = new Error("a fault while a file was edited");
  error.name = packed.name;
  return error;
}
