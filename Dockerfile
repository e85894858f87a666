# Latchkey in one image: the server by default, and the operator's command by its arguments.
#
#   docker build -t latchkey .
#   docker run --read-only --tmpfs /tmp -v latchkey:/data -p 127.0.0.1:3000:3000 -e BASE_URL=https://id.example.com latchkey
#   docker run --rm --read-only --tmpfs /tmp -v latchkey:/data latchkey doctor
#
# The image contains Node's headers, so the build downloads only npm and Debian packages.

FROM node:22-bookworm-slim AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 make g++ \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
# Packages first: they change less often than the source.
COPY package.json package-lock.json ./
COPY server/package.json server/
COPY cli/package.json cli/
RUN npm_config_nodedir=/usr/local npm ci --include=dev --no-audit --no-fund
COPY tsconfig.base.json tsconfig.build.json ./
COPY scripts scripts
COPY server/src server/src
COPY cli/src cli/src
RUN node scripts/build.mjs && npm prune --omit=dev --no-audit --no-fund

FROM node:22-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 DATA_DIR=/data
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist/bin dist/bin
# The server writes to /data only: the root file system can be read-only.
RUN install -d -o node -g node -m 700 /data
USER node
VOLUME /data
EXPOSE 3000
# The server answers the requests in flight and exits within ten seconds.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/health/ready`).then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/dist/bin/latchkey.js"]
CMD ["serve"]
