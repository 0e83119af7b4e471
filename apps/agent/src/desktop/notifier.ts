import { bodyMarkup, titleText, withoutControls, type Notification } from "./notification.ts";
import { powershell } from "./powershell.ts";
import { firstThatWorks, type DesktopOutcome } from "./program.ts";

/** Under which name the desktop files our notifications. */
const APPLICATION = "daemon";

/** Urgency of each level. Some desktops do not pop up `low`. A notification with `critical` stays until the user closes it. */
const LOOKS = {
  info: { urgency: "normal", icon: "dialog-information" },
  warning: { urgency: "normal", icon: "dialog-warning" },
  error: { urgency: "critical", icon: "dialog-error" },
  attention: { urgency: "critical", icon: "dialog-information" },
} as const;

/** Notifications on this host's desktop. */
export class DesktopNotifier {
  readonly #environment: NodeJS.ProcessEnv;
  readonly #platform: NodeJS.Platform;

  constructor(environment: NodeJS.ProcessEnv, platform: NodeJS.Platform = process.platform) {
    this.#environment = environment;
    this.#platform = platform;
  }

  raise(notification: Notification): Promise<DesktopOutcome> {
    const environment = this.#environment;
    if (this.#platform === "win32") return raiseOnWindows(notification, environment);
    if (this.#platform === "darwin") return raiseOnMac(notification, environment);
    const { urgency, icon } = LOOKS[notification.level];
    // notify-send takes the body for a C string: a backslash would bring back what has been taken out.
    const body = lines(notification, bodyMarkup).replaceAll("\\", "\\\\");
    const words = [titleText(notification.title), body];
    const options = [`--app-name=${APPLICATION}`, `--urgency=${urgency}`, `--icon=${icon}`];
    return firstThatWorks([["notify-send", ...options, "--", ...words]], {
      // It reads its arguments in the locale's encoding, and a service often has none.
      environment: { ...environment, LC_ALL: "C.UTF-8" },
    });
  }
}

/** Puts the address into the text where a click on the notification cannot open it. */
function lines({ body, actionUrl }: Notification, print: (text: string) => string): string {
  const parts = [body ?? "", actionUrl ?? ""].map((part) => print(part));
  return parts.filter((part) => part !== "").join("\n");
}

/** The words are arguments of the script, never part of it. */
function raiseOnMac(notification: Notification, environment: NodeJS.ProcessEnv): Promise<DesktopOutcome> {
  const script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run\n";
  const words = [withoutControls(notification.title), lines(notification, withoutControls)];
  return firstThatWorks([["osascript", "-", ...words]], { environment, input: script });
}

/** A toast, whose click opens the address. The words are escaped by the XML library. */
function raiseOnWindows(notification: Notification, environment: NodeJS.ProcessEnv): Promise<DesktopOutcome> {
  const script = `
$m = [Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime]
$xml = $m::GetTemplateContent([Windows.UI.Notifications.ToastTemplateType]::ToastText02)
$texts = $xml.GetElementsByTagName('text')
[void]$texts.Item(0).AppendChild($xml.CreateTextNode($words.title))
[void]$texts.Item(1).AppendChild($xml.CreateTextNode($words.body))
if ($words.url) {
  $xml.DocumentElement.SetAttribute('activationType', 'protocol')
  $xml.DocumentElement.SetAttribute('launch', $words.url)
}
$m::CreateToastNotifier('${APPLICATION}').Show([Windows.UI.Notifications.ToastNotification]::new($xml))
`;
  const words = {
    title: withoutControls(notification.title),
    body: withoutControls(notification.body ?? ""),
    url: notification.actionUrl ?? "",
  };
  const { command, input } = powershell(script, words);
  return firstThatWorks([command], { environment, input });
}
