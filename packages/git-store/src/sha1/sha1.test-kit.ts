/** The two files of a published collision. */
export type Collision = readonly [Buffer, Buffer];

/**
 * The identical-prefix collision of 2017 (Stevens, Bursztein, Karpman, Albertini, Markov: "The first collision for full SHA-1"): the common
 * beginning of two files, a block that leaves a near-collision, and a block that completes the collision.
 */
export const SHATTERED: Collision = (() => {
  const prefix =
    "255044462d312e330a25e2e3cfd30a0a0a312030206f626a0a3c3c2f57696474682032203020522f4865696768742033203020522f54797065203420302052" +
    "2f537562747970652035203020522f46696c7465722036203020522f436f6c6f7253706163652037203020522f4c656e6774682038203020522f42697473" +
    "506572436f6d706f6e656e7420383e3e0a73747265616d0affd8fffe00245348412d3120697320646561642121212121852fec092339759c39b1a1c63c4c" +
    "97e1fffe01";
  const blocks = [
    "7f46dc93a6b67e013b029aaa1db2560b45ca67d688c7f84b8c4c791fe02b3df614f86db1690901c56b45c1530afedfb76038e972722fe7ad728f0e4904e046c2" +
      "30570fe9d41398abe12ef5bc942be33542a4802d98b5d70f2a332ec37fac3514e74ddc0f2cc1a874cd0c78305a21566461309789606bd0bf3f98cda8044629a1",
    "7346dc9166b67e118f029ab621b2560ff9ca67cca8c7f85ba84c79030c2b3de218f86db3a90901d5df45c14f26fedfb3dc38e96ac22fe7bd728f0e45bce046d2" +
      "3c570feb141398bb552ef5a0a82be331fea48037b8b5d71f0e332edf93ac3500eb4ddc0decc1a864790c782c76215660dd309791d06bd0af3f98cda4bc4629b1",
  ] as const;
  return [Buffer.from(prefix + blocks[0], "hex"), Buffer.from(prefix + blocks[1], "hex")];
})();

/**
 * The chosen-prefix collision of 2020 (Leurent, Peyrin: "SHA-1 is a Shambles"): two prefixes, birthday bits, and nine blocks of
 * near-collisions of which the last completes the collision.
 */
export const SHAMBLES: Collision = [
  Buffer.from(
    "mQQNBH/oF4ABIAD/S2V5IGlzIHBhcnQgb2YgYSBjb2xsaXNpb24hIEl0J3MgYSB0cmFwIXnGGvCvzAVFFdknTnMHYksdx/sjmIu43otXXbp7nqsxwWdLbZdD" +
      "eKgncy/1hRx2ouYHcrWkfOHqxAu5k8EtjHDiSk+NX83twbMsnPGeMa8kKXWdQuTf2zFxn1h2I+5VKTm23NxFn8pTVTtw+H7eMKJH6jr2x1mi8gsyDXYNtk/0" +
      "eQhP08yzzdSDYtlqnEMGF8r/bDbGN+U/3ihBf2Jv7FTteUOkbl9XMPK7OPsd9uAJABDQDiSteL+SZBmTYI6NFYp4nzTEb+HmAn81pMv7gnB2xQ7KDot8ymm7" +
      "LCt5Aln5v5Vw3Y1EN6MRX6/3w8rAmtJSZgVcJxBHVReOrv+CWiyqKs+13mTOdkHcWaVBqfycdWdW4uI9xxPIwkyXkKprDjin9V8URSocooUN3ZVi/ZoYrUJJ" +
      "aqlwCPdGcvaO9GHriLCZM9YmtPkYdJzAJ/3dbEJfxCFoNdATTRUoW6sst4Sk98u0+1FNS/D2I3zwCp6fEyuaBm5v0X9sQph0eFhv9lGvlnR/tCa5hyuaiOQG" +
      "P1m7M0zABlD4OoDEJ1G3GXTTAPwoGaLo8eMsG1HLGOa/xNubrvZ11Kr1sVdKBH+PbdLsFTqTQSKTl02Sj4jO2TY8/vl84udCvzTJa47zh1Z2/qXMqOX33qC6" +
      "skE9TeAO5x7gHxYr220er9kl5q66rmo1TvF88gWkBPvbEvxFTUH92VzyRZZkoq0DLR2mCnMmQHXX8eDWwUA656DYYd8/5XBxiN1eB9FYm5+LZjBVP4/DUrPg" +
      "wn2oC926TGQCDQ==",
    "base64",
  ),
  Buffer.from(
    "mQMNBH/oF4ABGAD/UHJhY3RpY2FsIFNIQS0xIGNob3Nlbi1wcmVmaXggY29sbGlzaW9uIR0nbGumYeEEDh99dn8HYkndx/szLIu4wrdXXb7Hnqsr4WdLfbND" +
      "eLTLcy/hiRx2oCYHcqUQfOH26Au5l30tjGhSSk+dX83tzQssnOGSMa8m6XWdUlDf2y1Nn1hyn+5VMxm23Mxhn8pPuTtw7HLeMKCH6jrmc1mi7icyDXKxtk/s" +
      "yQhPw8yzzdg7Ytl6kEMGFQr/bCZyN+Uj4ihBe95v7E7NeUO0Sl9XLB67OO8R9uALwBDQHpCteKO+ZBmX3I6NDTp4nyTEb+Hqun81tMf7gnK2xQ7auot81lW7" +
      "LC/FAlnjn5VwzalEN7/9X6/jz8rAmBJSZhXoJxBbeReOqkOCWjQaKs+l3mTOevncWbVNqfyetWdW8lY9xw/0wkyTLKprFBin9U8wRSoAToUNyZli/ZjYrUJZ" +
      "3qlwFNtGcvIy9GHzOLCZI9YmtPWgdJzQK/3dboJfxDHcNdAPcRUoXxcst56E98uk31FNVxz2I2j8Cp6d0yuaFtpv0WNAQphwxFhv7uGvlmR/tCa1PyuamOgG" +
      "P1t7M0zQslD4JrzEJ1ULGXTJIPwoCYbo8f/AG1HfFOa/xhubrubB1KrpnVdKAMOPbcpcFTqDQSKTm/WSj5jC2TY+Pvl88lNCvyj1a473O1Z25IXMqPXT3qCm" +
      "XkE9WewO5xwgHxY7b20es/Ul5qoGrmot/vF84gWkBPdjEvxVQUH925zyRYbQoq0fER2mDs8mQG/38eDG5UA6+0zYYcsz5XBzSN1eF2VYm4OnZjBRg4/DSgPg" +
      "wm2oC9229GQCHQ==",
    "base64",
  ),
];
